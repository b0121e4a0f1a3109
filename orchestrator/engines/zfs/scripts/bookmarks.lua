-- Creates bookmarks in one transaction, all that can be; then fails with the first that could not.
-- Arguments: dataset, snapshot with its @, and bookmark of each.
local names = (...)["argv"]
local already_there, no_snapshot = 17, 2
local failed = nil
for i = 1, #names, 3 do
  local at = names[i] .. names[i + 1]
  local code = zfs.sync.bookmark(at, names[i] .. "#" .. names[i + 2])
  if code ~= 0 and code ~= already_there and failed == nil then
    local why = code == no_snapshot and "dataset does not exist" or "error " .. code
    failed = "cannot create bookmark of '" .. at .. "': " .. why
  end
end
if failed ~= nil then
  error(failed)
end
