/**
 * Lets a command run to its end when its output cannot be written. Who reads standard output may stop early, as `head`
 * does: that is no fault. Any other error, such as a full disk, is reported, and makes the exit code 1 in place of 0.
 */
export function watchOutput(): void {
  // There is nowhere left to report it.
  process.stderr.on('error', () => {})
  process.stdout.on('error', ({ code, message }: NodeJS.ErrnoException) => {
    if (code === 'EPIPE') return
    process.stderr.write(`Cannot write the output: ${message}\n`)
    process.once('exit', () => {
      process.exitCode ||= 1
    })
  })
}
