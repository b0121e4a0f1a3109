#!/bin/sh
# Runs inside the new root file system while the image is built; it has no network then. /lab-in holds what the host gives.
set -e
passwd -d root > /dev/null
echo lab > /etc/hostname
printf '%s\n' '127.0.0.1 localhost' '10.99.0.1 master' '10.99.0.2 backup' > /etc/hosts
rm -f /etc/resolv.conf
: > /etc/resolv.conf
echo '/dev/root / ext4 rw,noatime 0 0' > /etc/fstab

# One key for everybody, known on both machines; `ferry` is the ordinary user.
useradd --create-home --shell /bin/sh ferry
for home in /root /home/ferry; do
  install -d -m 700 "$home/.ssh"
  install -m 600 /lab-in/id_ed25519 "$home/.ssh/id_ed25519"
  install -m 600 /lab-in/id_ed25519.pub "$home/.ssh/authorized_keys"
done
chown -R ferry:ferry /home/ferry/.ssh
rm -f /etc/ssh/ssh_host_*
install -m 600 /lab-in/ssh_host_ed25519_key /etc/ssh/ssh_host_ed25519_key
install -m 644 /lab-in/ssh_host_ed25519_key.pub /etc/ssh/ssh_host_ed25519_key.pub
awk '{print "master,backup,10.99.0.1,10.99.0.2", $1, $2}' /etc/ssh/ssh_host_ed25519_key.pub > /etc/ssh/ssh_known_hosts
mkdir -p /etc/ssh/sshd_config.d
cat > /etc/ssh/sshd_config.d/00-lab.conf << 'END'
UsePAM no
UseDNS no
PermitRootLogin prohibit-password
PrintMotd no
PrintLastLog no
MaxStartups 200
MaxSessions 200
HostKey /etc/ssh/ssh_host_ed25519_key
END
# Without PAM a locked password locks the account.
usermod -p '*' ferry
mkdir -p /run/sshd
if sshd -T -o PerSourcePenalties=no > /dev/null 2>&1; then echo 'PerSourcePenalties no' >> /etc/ssh/sshd_config.d/00-lab.conf; fi

mkdir -p /usr/local/lib/lab
install -m 755 /lab-in/agent.py /lab-in/network /usr/local/lib/lab/
install -m 755 /lab-in/poolferry /usr/local/bin/poolferry
mkdir -p /mnt/poolferry
python3 -m venv --without-pip /opt/poolferry
cp -r /lab-in/site-packages/. /opt/poolferry/lib/python3*/site-packages/
# Bytecode is made here: under emulation it would cost seconds.
python3 -m compileall -q /opt/poolferry/lib /usr/local/lib/lab

cat > /etc/systemd/system/lab-network.service << 'END'
[Unit]
DefaultDependencies=no
After=systemd-remount-fs.service
Before=network-pre.target lab-agent.service
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/local/lib/lab/network
END
cat > /etc/systemd/system/lab-agent.service << 'END'
[Unit]
DefaultDependencies=no
After=lab-network.service
Wants=lab-network.service
[Service]
ExecStart=/usr/local/lib/lab/agent.py
Restart=always
KillMode=process
OOMScoreAdjust=-900
Environment=HOME=/root LANG=C.UTF-8 PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
[Install]
WantedBy=sysinit.target
END
cat > /etc/systemd/system/lab-sshd.service << 'END'
[Unit]
After=lab-network.service
[Service]
ExecStartPre=/bin/mkdir -p /run/sshd
ExecStart=/usr/sbin/sshd -D
Restart=always
RestartSec=0.2
KillMode=process
[Install]
WantedBy=multi-user.target
END
systemctl enable lab-agent.service lab-sshd.service > /dev/null 2>&1

# A short boot: modules are not compressed, what the lab does not need is not loaded, the coldplug is small.
for module in kvm_amd kvm_intel kvm ccp floppy psmouse pcspkr i2c_piix4 i2c_i801 input_leds serio_raw mac_hid pata_acpi \
  parport_pc joydev iTCO_wdt lpc_ich intel_agp tls dmi_sysfs mousedev evdev button intel_rapl_msr intel_rapl_common rapl; do
  echo "blacklist $module"
done > /etc/modprobe.d/lab-blacklist.conf
find /lib/modules -name '*.ko.zst' -exec zstd -d -q --rm {} +
find /lib/modules -name '*.ko.xz' -exec xz -d {} +
for kernel in /lib/modules/*; do depmod "${kernel##*/}"; done
mkdir -p /etc/systemd/system/systemd-udev-trigger.service.d
cat > /etc/systemd/system/systemd-udev-trigger.service.d/lab.conf << 'END'
[Service]
ExecStart=
ExecStart=-udevadm trigger --type=devices --action=add --subsystem-match=block --subsystem-match=pci --subsystem-match=virtio --subsystem-match=usb --subsystem-match=scsi --subsystem-match=scsi_host --subsystem-match=net --subsystem-match=misc --subsystem-match=virtio-ports
END
for unit in ssh.socket ssh.service sshd.service modprobe@loop.service modprobe@dm_mod.service modprobe@configfs.service \
  modprobe@drm.service modprobe@efi_pstore.service sys-kernel-config.mount systemd-sysusers.service \
  systemd-journal-catalog-update.service systemd-update-done.service systemd-journal-flush.service \
  apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer e2scrub_reap.service fstrim.timer \
  man-db.timer systemd-timesyncd.service systemd-resolved.service systemd-networkd.service systemd-networkd.socket \
  systemd-networkd-wait-online.service systemd-network-generator.service networkd-dispatcher.service \
  systemd-logind.service systemd-pstore.service systemd-hwdb-update.service systemd-update-utmp.service \
  systemd-update-utmp-runlevel.service systemd-tpm2-setup.service systemd-tpm2-setup-early.service \
  systemd-machine-id-commit.service ldconfig.service systemd-firstboot.service sanoid.timer sanoid-prune.service \
  zfs-zed.service zfs-share.service zfs-volume-wait.service zfs-volumes.target apparmor.service \
  systemd-rfkill.service systemd-rfkill.socket console-setup.service keyboard-setup.service console-getty.service \
  getty@tty1.service serial-getty@ttyS0.service getty.target rsync.service systemd-binfmt.service \
  proc-sys-fs-binfmt_misc.automount dev-hugepages.mount dev-mqueue.mount sys-kernel-debug.mount \
  sys-kernel-tracing.mount systemd-ask-password-wall.path systemd-ask-password-console.path; do
  ln -sf /dev/null "/etc/systemd/system/$unit"
done
mkdir -p /etc/systemd/journald.conf.d /etc/systemd/system.conf.d /etc/modules-load.d
printf '[Journal]\nStorage=volatile\nRuntimeMaxUse=8M\n' > /etc/systemd/journald.conf.d/lab.conf
printf '[Manager]\nDefaultTimeoutStartSec=60s\nDefaultTimeoutStopSec=10s\n' > /etc/systemd/system.conf.d/lab.conf
echo 'options zfs zfs_arc_max=100663296' > /etc/modprobe.d/lab-zfs.conf
echo zfs > /etc/modules-load.d/zfs.conf
systemd-machine-id-setup > /dev/null 2>&1 || true
[ -s /etc/machine-id ] || echo 0123456789abcdef0123456789abcdef > /etc/machine-id

# The kernel's module is built; what built it may go.
rm -rf /usr/src/* /var/lib/dkms /usr/lib/gcc /usr/lib/linux-kbuild* /usr/libexec/gcc /usr/include \
  /lib/firmware/* /usr/lib/firmware/* /usr/share/doc /usr/share/man /usr/share/locale/*
rm -f /usr/bin/*-linux-gnu-gcc* /usr/bin/*-linux-gnu-g++* /usr/bin/*-linux-gnu-lto-dump*
for kernel in /lib/modules/*; do depmod "${kernel##*/}"; done
rm -rf /lab-in /var/lib/apt/lists/* /var/cache/apt/*.bin
