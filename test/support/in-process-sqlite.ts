/**
 * Connections to SQLite in the test's own process and thread. Starting a thread takes 35 ms of processor time, and a run
 * starts thousands of stores, each with two. Requests and replies are cloned, ordered and delivered by the event loop as
 * those of a thread. What depends on real threads opens its store without (`platform/store/*.test.ts`, and all services
 * that are processes).
 */
import { MessageChannel } from 'node:worker_threads'
import { serveConnection } from '../../src/platform/store/sqlite/connection.ts'
import type { ConnectionThread, SqliteOptions } from '../../src/platform/store/sqlite/sqlite.ts'

export const connectInProcess: NonNullable<SqliteOptions['connect']> = (options) => {
  const { port1, port2 } = new MessageChannel()
  serveConnection(port2, options)
  const portEvent = (event: string) => (event === 'exit' ? 'close' : event)
  return {
    postMessage: (message: unknown, transfer: ArrayBuffer[] = []) => port1.postMessage(message, transfer),
    on: (event: string, listener: () => void) => port1.on(portEvent(event), listener),
    once: (event: string, listener: () => void) => port1.once(portEvent(event), listener),
    terminate: async () => port1.close(),
  } as unknown as ConnectionThread
}
