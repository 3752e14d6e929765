/** Two nodes on one PostgreSQL, with a sink that they deliver to and a receiver of POSTs. */
import type { TestContext } from 'node:test'
import { createReceiver } from './http-receiver.ts'
import { testNodes } from './nodes.ts'
import { createSink } from './smtp-sink.ts'

/** `more`: settings of both; `ofOne`: of the first only. */
export async function pair(
  t: TestContext,
  more: Record<string, string> = {},
  ofOne: Record<string, string> = {},
) {
  const sink = await createSink()
  const receiver = await createReceiver()
  t.after(async () => {
    await sink.close()
    await receiver.close()
  })
  const nodes = await testNodes(t, { SENDWRIGHT_DELIVERY: `smtp://${sink.host}:${sink.port}`, ...more })
  const one = await nodes.start(ofOne)
  const two = await nodes.start()
  return { sink, receiver, nodes, one, two }
}
