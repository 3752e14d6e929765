/** Completion of commands and options in a shell, from the usage texts of all commands. */
import { type Command, CommandError } from './usage.ts'

export const COMPLETION_USAGE = `sendwright completion bash|zsh|fish

  bash: source <(sendwright completion bash)
  zsh:  source <(sendwright completion zsh)
  fish: sendwright completion fish | source
`

type Shell = (words: Map<string, string[]>) => string

/** `sendwright completion`: prints a script for the shell. */
export async function completionCommand(args: string[], commands: Record<string, Command>): Promise<void> {
  const shell = args.length === 1 ? SHELLS[args[0] as keyof typeof SHELLS] : undefined
  if (!shell) throw new CommandError(COMPLETION_USAGE, 2)
  const words = new Map<string, string[]>()
  for (const [name, { load }] of Object.entries(commands))
    words.set(name, wordsOf(name, (await load()).usage))
  process.stdout.write(shell(words))
}

/** What may follow a command: its actions and options, as the usage text has them. */
function wordsOf(name: string, usage: string): string[] {
  const options = usage.match(/--[a-z][a-z-]*/g) ?? []
  const actions = [...usage.matchAll(new RegExp(`^sendwright ${name} ([a-z|]+)`, 'gm'))].flatMap(
    ([, words = '']) => words.split('|'),
  )
  return [...new Set([...actions, ...options, '--help'])]
}

const bash: Shell = (words) => `_sendwright() {
  local word=\${COMP_WORDS[COMP_CWORD]} words
  if [ "$COMP_CWORD" -eq 1 ]; then words='${[...words.keys(), 'help', '--version'].join(' ')}'
  else case \${COMP_WORDS[1]} in
${[...words].map(([name, list]) => `    ${name}) words='${list.join(' ')}' ;;`).join('\n')}
    *) words= ;;
  esac; fi
  COMPREPLY=($(compgen -W "$words" -- "$word"))
}
complete -o default -F _sendwright sendwright
`

const zsh: Shell = (words) => `autoload -Uz bashcompinit && bashcompinit\n${bash(words)}`

const fish: Shell = (words) =>
  [
    `complete -c sendwright -n __fish_use_subcommand -a '${[...words.keys(), 'help'].join(' ')}'`,
    ...[...words].map(
      ([name, list]) =>
        `complete -c sendwright -n '__fish_seen_subcommand_from ${name}' -a '${list.join(' ')}'`,
    ),
    '',
  ].join('\n')

const SHELLS = { bash, zsh, fish }
