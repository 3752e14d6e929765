/** sendwright(1) in roff (man(7)), from the help of all commands. */
import { COMMANDS } from '../../src/cli/commands.ts'
import { overview } from '../../src/cli/usage.ts'

/** A line of text as roff prints it: backslashes, and dots and quotes at its start, are its own signs. */
const escaped = (line: string): string =>
  line
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replace(/^(?=[.'])/, '\\&')

/** Lines as they are, in the shape of the terminal. */
const literal = (text: string): string =>
  ['.nf', ...text.trimEnd().split('\n').map(escaped), '.fi'].join('\n')

export async function manPage(version: string): Promise<string> {
  const sections = await Promise.all(
    Object.entries(COMMANDS).map(
      async ([name, { load }]) => `.SS ${escaped(name)}\n${literal((await load()).usage)}`,
    ),
  )
  const [synopsis = '', ...description] = overview(COMMANDS).split('\n\n')
  return [
    `.TH SENDWRIGHT 1 "" "sendwright ${escaped(version)}" "User Commands"`,
    '.SH NAME',
    'sendwright \\- email sending and domain management service',
    '.SH SYNOPSIS',
    literal(synopsis),
    '.SH DESCRIPTION',
    literal(description.join('\n\n')),
    '.SH COMMANDS',
    ...sections,
    '',
  ].join('\n')
}
