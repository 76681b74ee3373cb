-- Renews the lease. Needs no memory as long as the lease exists, so that a full server does not end it.
if redis.call('HGET', state, '!holder') ~= holder then return {'refused'} end
if redis.call('PEXPIRE', lease, lease_ms) == 0 then redis.call('SET', lease, holder, 'PX', lease_ms) end
redis.call('PEXPIRE', state, keep_ms)
return {'renewed'}
