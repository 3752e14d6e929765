/** Event sinks over HTTP, for the operator (event-sinks.md). */
import { BadRequest } from '../../base/process/errors.ts'
import { message } from '../../base/shape.ts'
import { type Operation, operation } from '../../platform/http/operation.ts'
import type { EventSinkRow } from '../../platform/store/schema.ts'
import { type KnownSinks, sinkView } from './known-sinks.ts'
import { SINK, SINK_BODY, SINKS } from './shapes.ts'

const PATH = '/sendwright/v1/event-sinks'
const ONE = `${PATH}/{name}` as const
const COMMON = { tag: 'Event sinks' } as const
const READ = { area: 'account', access: 'read', only: 'first' } as const
const WRITE = { area: 'account', access: 'write', only: 'first' } as const
const NOT_FOUND = 'Event sink not found'

interface SinkRouteParts {
  known: KnownSinks
  /** A sink was made, changed or removed. */
  changed(): void
}

export function sinkRoutes({ known, changed }: SinkRouteParts): Operation[] {
  const view = async (row: EventSinkRow) => sinkView(row, await known.behindMs(row))
  return [
    operation({
      ...COMMON,
      method: 'GET',
      path: PATH,
      id: 'listEventSinks',
      summary: 'List the event sinks, and how far each is behind',
      auth: READ,
      answers: { 200: SINKS },
      handler: async () => ({ items: await Promise.all((await known.list()).map(view)) }),
    }),
    operation({
      ...COMMON,
      method: 'GET',
      path: ONE,
      id: 'readEventSink',
      summary: 'Read an event sink',
      auth: READ,
      answers: { 200: SINK, 404: NOT_FOUND },
      handler: async ({ path }) => view(await known.one(path.name)),
    }),
    operation({
      ...COMMON,
      method: 'PUT',
      path: ONE,
      id: 'putEventSink',
      audit: { given: ['kind', 'url', 'servers', 'topic', 'bucket', 'user', 'access_key_id'] },
      summary: 'Make an event sink, or change where it leads; its place stays',
      description: 'For the first account only. The secret is stored sealed and never shown.',
      auth: WRITE,
      body: SINK_BODY,
      answers: { 200: SINK },
      async handler({ document, path }) {
        if (!/^[a-z0-9][a-z0-9._-]{0,31}$/.test(path.name)) throw new BadRequest('Invalid parameter: name')
        const row = await known.put(path.name, document())
        changed()
        return view(row)
      },
    }),
    operation({
      ...COMMON,
      method: 'DELETE',
      path: ONE,
      id: 'deleteEventSink',
      summary: 'Remove an event sink and its secret',
      auth: WRITE,
      answers: { 200: message('success', 'Removed'), 404: NOT_FOUND },
      async handler({ path }) {
        await known.remove(path.name)
        changed()
        return { message: 'success' }
      },
    }),
  ]
}
