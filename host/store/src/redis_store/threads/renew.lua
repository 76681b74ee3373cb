-- Renews the lease. Needs no memory as long as the lease exists, so that a full server does not end it.
local refused = refusal()
if refused then return refused end
if redis.call('PEXPIRE', lease, lease_ms) == 0 then redis.call('SET', lease, writer, 'PX', lease_ms) end
return {'renewed'}
