/** Event sinks over HTTP, for the operator (event-sinks.md). */
import { BadRequest } from '../../base/process/errors.ts'
import { message } from '../../base/shape.ts'
import { type Operation, operationsOf } from '../../platform/http/operation.ts'
import type { EventSinkRow } from '../../platform/store/schema.ts'
import { type KnownSinks, sinkView } from './known-sinks.ts'
import { SINK, SINK_BODY, SINKS } from './shapes.ts'

const PATH = '/sendwright/v1/event-sinks'
const ONE = `${PATH}/{name}` as const
const api = operationsOf({ tag: 'Event sinks', auth: { area: 'account', only: 'first' } })
const NOT_FOUND = 'Event sink not found'

interface SinkRouteParts {
  known: KnownSinks
  /** A sink was made, changed or removed. */
  changed(): void
}

export function sinkRoutes({ known, changed }: SinkRouteParts): Operation[] {
  const view = async (row: EventSinkRow) => sinkView(row, await known.behindMs(row))
  return [
    api.get(PATH, {
      id: 'listEventSinks',
      summary: 'List the event sinks, and how far each is behind',
      answers: { 200: SINKS },
      handler: async () => ({ items: await Promise.all((await known.list()).map(view)) }),
    }),
    api.get(ONE, {
      id: 'readEventSink',
      summary: 'Read an event sink',
      answers: { 200: SINK, 404: NOT_FOUND },
      handler: async ({ path }) => view(await known.one(path.name)),
    }),
    api.put(ONE, {
      id: 'putEventSink',
      audit: { given: ['kind', 'url', 'servers', 'topic', 'bucket', 'user', 'access_key_id'] },
      summary: 'Make an event sink, or change where it leads; its place stays',
      description: 'For the first account only. The secret is stored sealed and never shown.',
      body: SINK_BODY,
      answers: { 200: SINK },
      async handler({ document, path }) {
        if (!/^[a-z0-9][a-z0-9._-]{0,31}$/.test(path.name)) throw new BadRequest('Invalid parameter: name')
        const row = await known.put(path.name, document())
        changed()
        return view(row)
      },
    }),
    api.delete(ONE, {
      id: 'deleteEventSink',
      summary: 'Remove an event sink and its secret',
      answers: { 200: message('success', 'Removed'), 404: NOT_FOUND },
      async handler({ path }) {
        await known.remove(path.name)
        changed()
        return { message: 'success' }
      },
    }),
  ]
}
