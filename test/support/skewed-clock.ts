/** Preloaded into a process (`--import`): its wall clock is TEST_CLOCK_AHEAD_MS ahead. */
const aheadMs = Number(process.env['TEST_CLOCK_AHEAD_MS'])
const now = Date.now
Date.now = () => now() + aheadMs
