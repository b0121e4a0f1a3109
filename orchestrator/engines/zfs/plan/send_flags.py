"""The flags of a chain of sends: raw or not, and with which letters; decided with the first send and kept.

Why: ZFS accepts no raw increment on data that was received otherwise, and no increment without -L after one with it. Data sent
raw stays encrypted on the target; other data is readable there, so that needs consent.
"""

from orchestrator.domain.fast_dataclass import replace
from orchestrator.domain.plan import Refusal
from orchestrator.engines.zfs.commands.commands import hinted_zfs_command
from orchestrator.engines.zfs.model import Dataset, SendFlags, ZfsSurvey
from orchestrator.engines.zfs.plan.context import PlanContext

HOW_TO_DECRYPT = 'raw = "no" and may-decrypt = true in [zfs]'


def first_flags(case: PlanContext, name: str, source: Dataset, *, target_encrypts: bool) -> SendFlags | Refusal:
    """Return the flags of a new chain, or a refusal. `target_encrypts`: the target encrypts all data there."""
    back = case.world.returning is not None
    if source.encrypted and case.options.raw != "no" and has_its_own_key(case.world, source):
        return SendFlags(raw=True, backup=back)
    # Embedded blocks cannot be received into an encrypted dataset (openzfs #12480).
    flags = SendFlags(embedded=not target_encrypts and not source.encrypted, backup=back)
    return _refuse_readable(case, name, source, target_encrypts=target_encrypts) or flags


def frozen_flags(case: PlanContext, name: str, source: Dataset, target: Dataset) -> SendFlags | Refusal:
    """Return the flags of an existing chain, or a refusal when the job does not agree with them."""
    flags = target.flags or derived_flags(case, source, target)
    if not source.encrypted:
        flags = replace(flags, raw=False)
        return _refuse_locked(case, name, target) or flags
    if case.options.raw != "auto" and flags.raw != (case.options.raw == "yes"):
        return _refuse_change(case, name, flags)
    if flags.raw:
        return flags
    readable = _refuse_readable(case, name, source, target_encrypts=target.encrypted, chain=flags)
    return readable or _refuse_locked(case, name, target) or flags


def derived_flags(case: PlanContext, source: Dataset, target: Dataset) -> SendFlags:
    """Return the flags of a chain that another program began, derived from the existing data."""
    raw = source.encrypted and is_raw(case, target)
    return SendFlags(raw=raw, embedded=raw or not (source.encrypted or target.encrypted))


def is_raw(case: PlanContext, target: Dataset) -> bool:
    """Return whether a copy is encrypted as its source: a raw copy is its own encryption root, or lies below one."""
    root, top = target.encryption_root or "", case.target_name("")
    return target.encrypted and (root == top or root.startswith(f"{top}/"))


def has_its_own_key(world: ZfsSurvey, source: Dataset) -> bool:
    """Return whether a dataset has its own encryption, not only that of the pool that holds the copy."""
    copy = world.returning
    return copy is None or f"{source.encryption_root}/".startswith(f"{copy}/")


def _refuse_change(case: PlanContext, name: str, flags: SendFlags) -> Refusal:
    now, then = ("yes", "raw") if case.options.raw == "yes" else ("no", "not raw")
    was = "raw" if flags.raw else "not raw"
    whole = case.target_name(name)
    return Refusal(
        why=f"{whole} was received {was}, and what follows cannot be {then}",
        evidence=(f'raw = "{now}" in [zfs]', f"the copy's flags: {flags}"),
        hint=f'write raw = "auto", or start that copy from scratch: {case.command} --aside',
        guard="aside",
    )


def _refuse_readable(
    case: PlanContext, name: str, source: Dataset, *, target_encrypts: bool, chain: SendFlags | None = None
) -> Refusal | None:
    """Return a refusal when a non-raw send of encrypted data lacks the key, or the consent to a readable copy."""
    whole = case.source_name(name)
    if not source.encrypted:
        return None
    if not target_encrypts and not case.options.may_decrypt:
        anew = f", and start that copy from scratch: {case.command} --aside" if chain else ""
        return Refusal(
            why=f"{whole} is encrypted, and its copy {case.target_name(name)} would be stored readable",
            evidence=(f"the copy's flags: {chain}" if chain else f'raw = "{case.options.raw}" in [zfs]',),
            hint=f'write raw = "auto" to send it as it lies{anew}; or consent with {HOW_TO_DECRYPT}',
            guard="aside" if chain else None,
        )
    if not source.key_loaded:
        load = hinted_zfs_command("load-key", source.encryption_root or whole, side=case.world.source)
        return Refusal(
            why=f"the key of {whole} is not loaded, so it cannot be read to be sent",
            evidence=(f'raw = "{case.options.raw}" in [zfs]',),
            hint=f'{load}; or write raw = "auto": a new copy then needs no key',
            own=str(load),
        )
    return None


def _refuse_locked(case: PlanContext, name: str, target: Dataset) -> Refusal | None:
    """Return a refusal when the target must encrypt a non-raw stream, and its key is not loaded."""
    if not target.encrypted or target.key_loaded:
        return None
    whole = case.target_name(name)
    load = hinted_zfs_command("load-key", target.encryption_root or whole, side=case.world.target)
    return Refusal(
        why=f"the key of {whole} is not loaded on the target, so nothing can be received there but raw streams",
        evidence=(f"its encryption root is {target.encryption_root or whole}",),
        hint=f"{load}; then run the job again",
        own=str(load),
    )
