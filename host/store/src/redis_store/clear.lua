-- Deletes a session that nobody has open.
local held = redis.call('GET', lease)
if held then
    return {'leased', held, string.format('%.0f', redis.call('PTTL', lease))}
end
return {'deleted', tostring(redis.call('DEL', state))}
