-- The start of every script of a thread.
-- KEYS: the hash of the thread, the lease of its writer, the stream of its lines.
-- ARGV: the writer; the term of its lease, and the time, in milliseconds.
--
-- Fields of the hash: `writer`, the last one, and `address`, that of its host; `lines` and `bytes`, of the stream; `written`, the time of the last line; `access`. An entry of
-- the stream has the number of its line, from 1, as the first part of its id, and the line as `line`.
local thread, lease, records = KEYS[1], KEYS[2], KEYS[3]
local writer, lease_ms, now_ms = ARGV[1], ARGV[2], ARGV[3]

-- The reply to a writer that must not write; nil for the one that has the thread.
local function refusal()
    local last = redis.call('HGET', thread, 'writer')
    if last == writer then return nil end
    local held = redis.call('GET', lease)
    if not last and not held then return {'lost'} end
    return {'fenced', held or last}
end
