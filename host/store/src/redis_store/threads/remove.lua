-- Removes a thread with everything that is kept of it, a repair that broke off (KEYS[4]) included.
local refused = refusal()
if refused then return refused end
redis.call('DEL', records, thread, lease, KEYS[4])
return {'removed'}
