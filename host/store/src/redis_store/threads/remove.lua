-- Removes a thread with everything that is kept of it.
local refused = refusal()
if refused then return refused end
redis.call('DEL', records, thread, lease)
return {'removed'}
