-- requests.lua: one kind of work for wrk, each request for a random resource.
--
-- The environment says what to send and what a good answer looks like; see
-- "wrk" in bench/run.  In the address and the body @ID@ stands for the end of
-- an identifier and @NUMBER@ for something that no other request has.

local method = os.getenv("BENCH_METHOD")
local path = os.getenv("BENCH_PATH")
local body = os.getenv("BENCH_BODY")
local status = tonumber(os.getenv("BENCH_STATUS"))
local least = tonumber(os.getenv("BENCH_LEAST"))
local most = tonumber(os.getenv("BENCH_MOST"))

local threads = {}

function setup(thread)
	thread:set("number", #threads + 1)
	table.insert(threads, thread)
end

function init(args)
	math.randomseed(os.time() * 64 + number)
	count = 0
	bad = 0
	wrk.method = method
	if body == "" then
		body = nil
	else
		wrk.headers["Content-Type"] = "application/vnd.api+json"
	end
	wrk.headers["Accept"] = "application/vnd.api+json"
	wrk.headers["Authorization"] = "Bearer " .. os.getenv("BENCH_TOKEN")
	fixed = not path:find("@", 1, true) and body == nil and wrk.format(nil, path)
	run = string.format("%x-%x-", os.time(), math.random(1, 0xffffff))
end

local function fill(text)
	count = count + 1
	text = text:gsub("@ID@", string.format("%012x", math.random(1, 20000)))
	return (text:gsub("@NUMBER@", run .. number .. "-" .. count))
end

function request()
	return fixed or wrk.format(nil, fill(path), nil, body and fill(body))
end

function response(answer, headers, text)
	if answer ~= status or #text < least or #text > most then
		bad = bad + 1
	end
end

function done(summary, latency, requests)
	local faults = summary.errors.connect + summary.errors.read +
		summary.errors.write + summary.errors.timeout

	for _, thread in ipairs(threads) do
		faults = faults + thread:get("bad")
	end
	print(string.format("RESULT %f %f %f %d",
		summary.requests / summary.duration * 1e6,
		latency:percentile(50), latency:percentile(99), faults))
end
