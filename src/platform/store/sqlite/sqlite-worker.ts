/** A thread with one connection of the store to its SQLite database. */
import { type MessagePort, parentPort, workerData } from 'node:worker_threads'
import { collectAtRest } from '../../../base/process/rest-collection.ts'
import { type ConnectionOptions, serveConnection } from './connection.ts'

collectAtRest(serveConnection(parentPort as MessagePort, workerData as ConnectionOptions))
