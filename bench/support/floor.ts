/** The physical floor of a message on this machine: the unavoidable operations, measured in place. */
import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { closeSync, fdatasyncSync, openSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { measureFlow, startSink } from './flow.ts'
import { makeContent } from './messages.ts'
import { processTree } from './processes.ts'
import { withRig } from './rig.ts'
import { sinkAlone } from './systems.ts'

export interface Floor {
  /** CPU microseconds of one RSA-2048 signature over SHA-256. */
  signatureUs: number
  /** Microseconds of one fdatasync after a write of 4 KB, and its CPU. */
  syncUs: number
  syncCpuUs: number
  /** CPU microseconds of one 10 KB transaction over an open loopback connection, both ends together. */
  transactionUs: number
}

const SIGNATURES = 2_000
const SYNCS = 500
const TRANSACTIONS = 20_000
const SHORT_DIVISOR = 20

export async function measureFloor(folder: string, contentBytes: number, short: boolean): Promise<Floor> {
  const part = (count: number) => Math.ceil(count / (short ? SHORT_DIVISOR : 1))
  return withRig(folder, async (rig) => ({
    signatureUs: signatureUs(part(SIGNATURES)),
    ...syncTimes(rig.folder, part(SYNCS)),
    transactionUs: await transactionUs(folder, contentBytes, part(TRANSACTIONS)),
  }))
}

/** In a separate process with the same OpenSSL settings as the service. */
function signatureUs(count: number): number {
  const program = join(import.meta.dirname, 'signature-cost.ts')
  const settings = join(import.meta.dirname, '../../bin/node-settings.sh')
  const command = [
    '-c',
    '. "$0"; tune_openssl; exec "$@"',
    settings,
    process.execPath,
    program,
    String(count),
  ]
  return Number(execFileSync('/bin/sh', command, { encoding: 'utf8' }))
}

function syncTimes(folder: string, count: number): { syncUs: number; syncCpuUs: number } {
  const file = openSync(join(folder, 'sync'), 'w')
  const page = randomBytes(4_096)
  const before = process.cpuUsage()
  const startedAt = performance.now()
  for (let at = 0; at < count; at++) {
    writeSync(file, page)
    fdatasyncSync(file)
  }
  const times = {
    syncUs: ((performance.now() - startedAt) * 1_000) / count,
    syncCpuUs: cpuUs(before) / count,
  }
  closeSync(file)
  return times
}

const cpuUs = (before: NodeJS.CpuUsage) => {
  const { user, system } = process.cpuUsage(before)
  return user + system
}

/** Both ends are small and in JavaScript: a sink in C would take less. */
function transactionUs(folder: string, contentBytes: number, count: number): Promise<number> {
  return withRig(folder, async (rig) => {
    const sink = await startSink(rig)
    const system = await sinkAlone('floor', makeContent(contentBytes)).start(rig, sink)
    const helpers = processTree([process.pid]).filter(({ parent }) => parent === process.pid)
    const roots = helpers.map(({ pid }) => pid)
    await measureFlow(sink, { ...system, roots }, { count: Math.ceil(count / 5), firstNumber: 0 })
    const flow = await measureFlow(sink, { ...system, roots }, { count, firstNumber: 0 })
    return flow.cpuPerThousand * 1_000
  })
}
