/**
 * A release on a machine of 512 MB, which a control group stands for: the bench's load of 10 KB messages from 50
 * connections, to a sink that takes them at once. Nothing may be lost, and the kernel may end nothing.
 * `SENDWRIGHT_DRILL_RELEASE`: the tree of a release; default: one is made.
 */
import assert from 'node:assert/strict'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { measureFlow, type System, startSink } from '../../bench/support/flow.ts'
import { makeContent, sendRequest, singleFields } from '../../bench/support/messages.ts'
import { memoryOf } from '../../bench/support/processes.ts'
import { type Rig, withRig } from '../../bench/support/rig.ts'
import { startService } from '../../bench/support/service.ts'
import { httpLoad, SESSIONS } from '../../bench/support/systems.ts'
import type { DrillReport } from '../../scripts/drill.ts'
import { makeRelease } from '../../scripts/release/release.ts'
import { makeMemoryGroup } from '../support/memory-group.ts'
import { residentPeakBytes } from '../support/process-memory.ts'

export const title = "A release with 512 MB of memory under the bench's load"

const MB = 1_048_576
const LIMIT_MB = 512
const CONTENT_BYTES = 10_000
const WARM_UP = 20_000
const MESSAGES = 40_000
/** Its memory is returned after a minute. */
const REST_MS = 90_000

export async function run(report: DrillReport): Promise<void> {
  await withRig(tmpdir(), async (rig) => {
    const launcher = join(process.env['SENDWRIGHT_DRILL_RELEASE'] ?? (await releaseIn(rig)), 'bin/sendwright')
    await measure(rig, launcher, report)
  })
}

async function releaseIn(rig: Rig): Promise<string> {
  const [tree] = await makeRelease({
    ...{ root: resolve(import.meta.dirname, '../..'), folder: join(rig.folder, 'release') },
    ...{ kinds: ['tree'], quick: true, processor: process.arch === 'arm64' ? 'arm64' : 'x64' },
  })
  return tree as string
}

async function measure(rig: Rig, launcher: string, report: DrillReport): Promise<void> {
  const group = makeMemoryGroup(LIMIT_MB * MB)
  if (group === null) throw new Error('this needs control groups, and root')
  rig.defer('the control group', async () => group.remove())
  const sink = await startSink(rig)
  const service = await startService(rig, {
    database: 'sqlite',
    env: { SENDWRIGHT_DELIVERY: `smtp://127.0.0.1:${sink.port}` },
    launcher,
    memoryGroup: group.folder,
  })
  const request = sendRequest(service, singleFields(service.domain, makeContent(CONTENT_BYTES)))
  const system: System = {
    roots: service.roots,
    recipients: 1,
    load: httpLoad(rig, service, request, SESSIONS),
    stop: service.stop,
  }
  await sleep(REST_MS)
  report.figure('resident at rest', memoryOf(service.roots).rssMb, 'MB')
  const flows = [
    await measureFlow(sink, system, { count: WARM_UP, firstNumber: 90_000_000 }),
    await measureFlow(sink, system, { count: MESSAGES, firstNumber: 0 }),
  ]
  for (const [name, flow] of [
    ['warm-up', flows[0]],
    ['load', flows[1]],
  ] as const) {
    report.figure(`${name}: delivered`, flow?.delivered ?? 0, 'messages')
    report.figure(`${name}: rate`, flow?.perSecond ?? 0, 'messages/s')
    report.figure(`${name}: processor time for 1,000`, flow?.cpuPerThousand ?? 0, 's')
  }
  report.figure('highest resident set', (await residentPeakBytes(service.pid)) / MB, 'MB')
  report.figure('highest use of the group, files in its cache included', group.peakBytes() / MB, 'MB')
  report.figure('killed for want of memory', group.kills())
  assert.equal(group.kills(), 0)
  await sleep(REST_MS)
  report.figure('resident at rest again', memoryOf(service.roots).rssMb, 'MB')
  await service.stop()
}
