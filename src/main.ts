/** The program: carries out its command line, and sets the exit status. */
import { runProgram } from './cli/program.ts'

// A running service keeps the process alive; its own stop ends it.
process.exitCode = await runProgram(process.argv.slice(2))
