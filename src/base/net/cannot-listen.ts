/** A port of ours cannot be opened: taken, not allowed, or its address is not this machine's. */
export class CannotListen extends Error {
  /** @param settings those that choose the address and the port, without their prefix */
  constructor(protocol: string, settings: readonly [host: string, port: string], cause: Error) {
    const names = settings.map((name) => `SENDWRIGHT_${name}`).join(' and ')
    super(`Cannot listen for ${protocol}, as ${names} say: ${cause.message}`, { cause })
  }
}
