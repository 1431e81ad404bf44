-- requests.lua: one kind of work for wrk, each request for a random resource.
--
-- The environment says what to send and what a good answer looks like; see
-- "wrk" in bench/Bench.pm.  In the address and the body @ID@ stands for the end of
-- an identifier, @NUMBER@ for something that no other request has, and @UUID@
-- for the identifier of something new.
--
-- To cost little, requests are made beforehand where they may be sent again,
-- and wrk itself looks at the status of each answer.  The sizes of all answers
-- are added up by wrk, too, so it is their mean that is checked.  Only where a
-- good status may come with a fault, which is found by a text that it has, the
-- answers are read here.

local method = os.getenv("BENCH_METHOD")
local path = os.getenv("BENCH_PATH")
local body = os.getenv("BENCH_BODY")
local least = tonumber(os.getenv("BENCH_LEAST"))
local most = tonumber(os.getenv("BENCH_MOST"))
local fault = os.getenv("BENCH_FAULT") or ""
local makes = method == "POST" and body:find("@NUMBER@", 1, true)
local names = body:find("@UUID@", 1, true)

local threads = {}

function setup(thread)
	thread:set("number", #threads + 1)
	table.insert(threads, thread)
end

local function make()
	local id = string.format("%012x", math.random(1, 20000))
	local values

	count = count + 1
	values = { ID = id, NUMBER = run .. number .. "-" .. count }
	if names then
		values.UUID = string.format("%08x-%04x-4%03x-8%03x-%012x",
			os.time(), start, number, math.random(0, 0xfff), count)
	end
	return wrk.format(nil, (path:gsub("@(%u+)@", values)), nil,
		body and (body:gsub("@(%u+)@", values)))
end

function init(args)
	math.randomseed(os.time() * 64 + number)
	start = math.random(0, 0xffff)
	run = string.format("%x-%x-", os.time(), math.random(1, 0xffffff))
	count = 0
	made = {}
	sent = 0
	wrk.method = method
	if body == "" then
		body = nil
	else
		wrk.headers["Content-Type"] = os.getenv("BENCH_TYPE")
	end
	wrk.headers["Accept"] = os.getenv("BENCH_TYPE")
	wrk.headers["Authorization"] = "Bearer " .. os.getenv("BENCH_TOKEN")
	for i = 1, makes and 0 or 2000 do
		made[i] = make()
	end
end

function request()
	if #made == 0 then
		return make()
	end
	sent = sent + 1
	return made[sent % #made + 1]
end

if fault ~= "" then
	failed = 0
	function response(status, headers, answer)
		if answer:find(fault, 1, true) then
			failed = failed + 1
		end
	end
end

function done(summary, latency, requests)
	local errors = summary.errors
	local faults = errors.connect + errors.read + errors.write +
		errors.timeout + errors.status
	local size = summary.bytes / summary.requests

	for _, thread in ipairs(threads) do
		faults = faults + (thread:get("failed") or 0)
	end
	if size < least or size > most then
		faults = faults + summary.requests
	end
	print(string.format("RESULT %f %f %f %d",
		summary.requests / summary.duration * 1e6,
		latency:percentile(50), latency:percentile(99), faults))
end
