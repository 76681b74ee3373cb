-- Replaces the note ARGV[6] by ARGV[9], where its value still is ARGV[8], or where there is none and ARGV[7] is 0.
local refused = refusal()
if refused then return refused end
local old = redis.call('HGET', state, ARGV[6])
local value = old and old:sub(old:find('\n', 1, true) + 1)
local same = (ARGV[7] == '1') == (value ~= false) and (not value or value == ARGV[8])
if not same then return {'other', value and '1' or '0', value or ''} end
redis.call('HSET', state, ARGV[6], ARGV[9], '!active', now_ms)
local number = redis.call('HINCRBY', state, '!number', 1)
hold()
return {'replaced', tostring(number)}
