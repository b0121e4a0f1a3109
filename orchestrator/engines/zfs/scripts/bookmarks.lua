-- Creates bookmarks in one transaction, all that can be; then fails with the first that could not.
-- A snapshot that is gone since the look is passed over: its own send says so, and holds up no other dataset.
-- Arguments: dataset, snapshot with its @, and bookmark of each.
local names = (...)["argv"]
local already_there, no_snapshot = 17, 2
local failed = nil
for i = 1, #names, 3 do
  local at = names[i] .. names[i + 1]
  local code = zfs.sync.bookmark(at, names[i] .. "#" .. names[i + 2])
  if code ~= 0 and code ~= already_there and code ~= no_snapshot and failed == nil then
    failed = "cannot create bookmark of '" .. at .. "': error " .. code
  end
end
if failed ~= nil then
  error(failed)
end
