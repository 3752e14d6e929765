import assert from 'node:assert/strict'
import { tmpdir } from 'node:os'
import { test } from 'node:test'
import { ASK_LIMIT_MS, measureFlow, startSink, untilDelivered } from './flow.ts'
import { makeContent } from './messages.ts'
import { withRig } from './rig.ts'
import { sinkAlone } from './systems.ts'
import { talkSmtp } from './testing.ts'

test('the sink counts what the load generator sends, over sessions that stay open', async () => {
  await withRig(tmpdir(), async (rig) => {
    const sink = await startSink(rig)
    const system = await sinkAlone('sink', makeContent(10_000)).start(rig, sink)
    const flow = await measureFlow(sink, system, { count: 700, firstNumber: 0 })
    assert.deepEqual([flow.delivered, flow.load.accepted, flow.load.failed, flow.signed], [700, 700, 0, 0])
  })
})

test('the sink accepts pipelined commands, finds signatures and an end of content split between two reads', async () => {
  await withRig(tmpdir(), async (rig) => {
    const sink = await startSink(rig)
    await sink.ask({ kind: 'reset', refuse: ['refused.example'], record: 'b.example' }, ASK_LIMIT_MS)
    const replies = await talkSmtp(sink.port, [
      'EHLO x\r\n',
      'MAIL FROM:<a@a.example>\r\nRCPT TO:<r1@b.example>\r\nRCPT TO:<r2@b.example>\r\nDATA\r\n',
      'Subject: x\r\nDKIM-Signature: v=1\r\n\r\nbody\r\n.',
      '\r\nMAIL FROM:<a@a.example>\r\nRCPT TO:<r@refused.example>\r\nDATA\r\n',
      'QUIT\r\n',
    ])
    assert.deepEqual(
      replies.filter((line) => line[3] === ' ').map((line) => line.slice(0, 3)),
      ['220', '250', '250', '250', '250', '354', '250', '250', '451', '554', '221'],
    )
    const stats = await untilDelivered(sink, 2)
    assert.deepEqual([stats.count, stats.signed, stats.refused], [2, 1, 1])
    const { times } = await sink.ask({ kind: 'times' }, ASK_LIMIT_MS)
    assert.deepEqual([...(times?.keys() ?? [])], ['r1@b.example', 'r2@b.example'])
  })
})

test('the sink accepts chunks, and refuses them without a recipient', async () => {
  await withRig(tmpdir(), async (rig) => {
    const sink = await startSink(rig)
    await sink.ask({ kind: 'reset', refuse: ['refused.example'], record: null }, ASK_LIMIT_MS)
    const content = 'Subject: x\r\nDKIM-Signature: v=1\r\n\r\nbody\r\n.\r\n'
    const replies = await talkSmtp(sink.port, [
      'EHLO x\r\n',
      `MAIL FROM:<a@a.example>\r\nRCPT TO:<r1@b.example>\r\nBDAT ${content.length} LAST\r\n${content.slice(0, 20)}`,
      `${content.slice(20)}MAIL FROM:<a@a.example>\r\nRCPT TO:<r@refused.example>\r\nBDAT 3 LAST\r\nx\r\n`,
      'QUIT\r\n',
    ])
    assert.deepEqual(
      replies.filter((line) => line[3] === ' ').map((line) => line.slice(0, 3)),
      ['220', '250', '250', '250', '250', '250', '451', '503', '221'],
    )
    const stats = await untilDelivered(sink, 1)
    assert.deepEqual([stats.count, stats.signed, stats.refused], [1, 1, 1])
  })
})
