/**
 * Flags of V8 that the launcher sets and the running service takes back (`bin/node-settings.sh`, decision 192). One
 * more is in heap-growth.ts.
 */
import { setFlagsFromString } from 'node:v8'

/** Before the first thread is started: the size of the main thread's young generation would overrule the threads' own limits. */
export const freeThreadLimits = () => setFlagsFromString('--max-semi-space-size=0')
