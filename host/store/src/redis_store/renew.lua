-- Renews the lease. Needs no memory as long as the lease exists, so that a full server does not end it.
local found = redis.call('HGET', state, '!holder')
-- A server that lost its data has no holder either: the lease goes on, and the next write reports the loss.
if found and found ~= holder then return {'refused'} end
local leased = redis.call('GET', lease)
if leased and leased ~= holder then return {'refused'} end
if not found then
  redis.call('SET', lease, holder, 'PX', lease_ms)
  return {'renewed'}
end
if redis.call('PEXPIRE', lease, lease_ms) == 0 then redis.call('SET', lease, holder, 'PX', lease_ms) end
redis.call('PEXPIRE', state, keep_ms)
return {'renewed'}
