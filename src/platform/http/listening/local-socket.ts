/**
 * The socket in the data folder through which the command line calls the service (decision 134). Whoever can open it could
 * read the sealing secret beside it, and nobody else can put another one there.
 */
import { chmodSync, closeSync, constants, lstatSync, openSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Arrival } from './arrival.ts'
import { createListener, type Deadlines, type Listener } from './listener.ts'

const NAME = 'service.sock'
const MODE = 0o600
/** Length of `sun_path` without its final NUL, on the system with the smallest one. */
const PATH_MAX_BYTES = 103

interface SocketPath {
  /** What the system gets. */
  path: string
  /** Call it when no listener is open any more, and no connection will be opened. */
  release(): void
}

/** For people. */
export const socketFile = (dataFolder: string): string => join(dataFolder, NAME)

/**
 * The path in a form that is short enough for the system: a long one leads through the open folder, which Linux can.
 * @throws the system's error where the folder is not there
 */
export function socketPath(dataFolder: string): SocketPath {
  const path = socketFile(dataFolder)
  if (Buffer.byteLength(path) <= PATH_MAX_BYTES || process.platform !== 'linux')
    return { path, release: () => {} }
  const folder = openSync(dataFolder, constants.O_RDONLY | constants.O_DIRECTORY)
  return { path: `/proc/self/fd/${folder}/${NAME}`, release: () => closeSync(folder) }
}

interface SocketListener extends Omit<Listener, 'listen'> {
  /**
   * The data folder must be locked for this process: what lies there was left by one that was killed.
   * @throws the system's error if it cannot be opened, or an error that says what lies there
   */
  listen(): Promise<void>
}

export function createSocketListener(
  dataFolder: string,
  deadlines: Deadlines,
  handle: (arrival: Arrival) => void,
): SocketListener {
  const listener = createListener({ deadlines, isLocal: true }, handle)
  let socket: SocketPath | null = null
  const release = () => {
    socket?.release()
    socket = null
  }
  return {
    async listen() {
      socket = socketPath(dataFolder)
      try {
        removeLeft(socket.path)
        await listener.listen(socket.path)
        // Others may open it for a moment before this; they would need the key still.
        chmodSync(socket.path, MODE)
      } catch (error) {
        await listener.close()
        release()
        throw error
      }
    },
    close: () => listener.close().finally(release),
    cut: listener.cut,
  }
}

function removeLeft(path: string): void {
  const left = lstatSync(path, { throwIfNoEntry: false })
  if (left === undefined) return
  if (!left.isSocket()) throw new Error('another file has its name')
  rmSync(path)
}
