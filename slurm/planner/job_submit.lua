-- SPDX-License-Identifier: Apache-2.0
-- Slurm's job_submit.lua: asks wattshare-planner about jobs that were submitted with --watt-finish.
-- The SPANK plugin puts what the user asked for into the job's control environment. Without the
-- planner, jobs are scheduled as Slurm does it by itself, and the user is told.

local planner = os.getenv("WATTSHARE_PLANNER") or "/usr/sbin/wattshare-planner"
local socket = os.getenv("WATTSHARE_PLANNER_SOCKET") or "/run/wattshare-planner/sock"

-- What the shell reads as one word, whatever the user wrote.
local function word(text)
    return "'" .. text:gsub("'", "'\\''") .. "'"
end

local function wish(job, name)
    local env = job.spank_job_env
    for _, text in pairs(type(env) == "table" and env or {}) do
        local value = text:match("^SPANK_WATTSHARE_" .. name .. "=(.*)$")
            or text:match("^WATTSHARE_" .. name .. "=(.*)$")
        if value then return value end
    end
    return nil
end

-- nil: the planner does not answer
local function ask(task, length, finish)
    local f = io.popen(word(planner) .. " --ask --socket " .. word(socket) .. " -- " .. word(task) .. " "
        .. word(length) .. " " .. word(finish) .. " 2>/dev/null </dev/null")
    local line = f and f:read("*l")
    if f then f:close() end
    return line
end

function slurm_job_submit(job, parts, uid)
    local finish = wish(job, "FINISH")
    if not finish then return slurm.SUCCESS end
    local gres = job.tres_per_node or job.tres_per_job
    if not gres then
        job.tres_per_node = "gres:gpu:1"
    elseif not gres:match("^gres:gpu:1$") and not gres:match("^gres:gpu$") then
        slurm.log_user("wattshare: a job with --watt-finish has a GPU to itself: submit it with --gres=gpu:1, "
            .. "not with " .. gres)
        return slurm.ERROR
    end
    local line = ask(wish(job, "TASK") or "-", wish(job, "LENGTH") or "0", finish)
    local word, text = (line or ""):match("^(%a+) (.*)$")
    if word == "no" then
        slurm.log_user("wattshare: " .. text)
        return slurm.ERROR
    end
    local node, minutes, delay, note = (word == "yes" and text or ""):match("^(%S+) (%d+) (%d+) (plan: .*)$")
    if not node then
        slurm.log_user("wattshare: this job has no plan, and its deadline may be missed: "
            .. (text or "wattshare-planner does not answer"))
        return slurm.SUCCESS
    end
    -- The planner lets the job begin when its node has come up. If the planner ends before, Slurm
    -- does, when the node would be taken for down if it had not come up.
    if tonumber(delay) > 0 then
        if job.begin_time and job.begin_time > os.time() then
            note = note:gsub(", waits for its node", "")
        else
            job.begin_time = os.time() + tonumber(delay)
        end
    end
    job.req_nodes = node
    job.admin_comment = note
    if job.time_limit == nil or job.time_limit == slurm.NO_VAL then job.time_limit = tonumber(minutes) end
    return slurm.SUCCESS
end

function slurm_job_modify(job, record, parts, uid)
    return slurm.SUCCESS
end
