/** Completion of commands and options in a shell, from the usage texts of all commands. */
import { type Command, parseWords, wrongArguments } from './usage.ts'

export const usage = `sendwright completion bash|zsh|fish

  bash: source <(sendwright completion bash)
  zsh:  source <(sendwright completion zsh)
  fish: sendwright completion fish | source
`

/** What may follow a command. */
interface Words {
  /** Its first argument; none where that is a name or a file. */
  actions: string[]
  options: string[]
  /** Files follow, which the shell completes. */
  takesFiles: boolean
}

type Shell = (words: Map<string, Words>) => string

/** `sendwright completion`: prints a script for the shell. */
export async function run(args: string[], commands: Record<string, Command>): Promise<void> {
  const { positionals } = parseWords('completion', args, {})
  const [name = '', ...more] = positionals
  const shell = more.length === 0 && Object.hasOwn(SHELLS, name) ? SHELLS[name as keyof typeof SHELLS] : null
  if (!shell) throw wrongArguments('completion', 'Name one of bash, zsh and fish')
  process.stdout.write(await completionScript(shell, commands))
}

/** The script of one shell. */
export async function completionScript(shell: Shell, commands: Record<string, Command>): Promise<string> {
  const words = new Map<string, Words>()
  for (const [command, { load }] of Object.entries(commands))
    words.set(command, wordsOf(command, (await load()).usage))
  const help = { actions: Object.keys(commands), options: [], takesFiles: false }
  return shell(words.set('help', help))
}

/** As the usage text has them. Commands may share one: the lines of the others do not count. */
function wordsOf(name: string, usage: string): Words {
  const own = usage.replace(new RegExp(`^sendwright (?!${name} |${name}$).*$`, 'gm'), '')
  const actions = [...own.matchAll(new RegExp(`^sendwright ${name} ([a-z|]+)`, 'gm'))].flatMap(
    ([, words = '']) => words.split('|'),
  )
  return {
    actions: [...new Set(actions)],
    options: [...new Set([...(own.match(/--[a-z][a-z-]*/g) ?? []), '--help'])],
    takesFiles: /FILE|FOLDER/.test(own),
  }
}

const list = (words: readonly string[]) => words.join(' ')

/** An empty word is completed to actions, else to files or options: whoever wants options types a dash. */
const bash: Shell = (words) => `_sendwright() {
  local word=\${COMP_WORDS[COMP_CWORD]} actions= options= files=
  case \${COMP_WORDS[1]} in
${[...words].map(([name, { actions, options, takesFiles }]) => `    ${name}) actions='${list(actions)}' options='${list(options)}' files=${takesFiles ? 'yes' : ''} ;;`).join('\n')}
  esac
  if [ "$COMP_CWORD" -eq 1 ]; then actions='${list([...words.keys()])}' options=--version
  elif [ "$COMP_CWORD" -gt 2 ]; then actions=
  fi
  case $word in
    -*) actions=$options ;;
    *) if [ -z "$actions$files" ]; then actions=$options; fi ;;
  esac
  COMPREPLY=($(compgen -W "$actions" -- "$word"))
}
complete -o default -F _sendwright sendwright
`

const zsh: Shell = (words) => `autoload -Uz bashcompinit && bashcompinit\n${bash(words)}`

/** Fish offers options after a dash only. */
const fish: Shell = (words) =>
  [
    `complete -c sendwright -n __fish_use_subcommand -f -a '${list([...words.keys()])}'`,
    'complete -c sendwright -n __fish_use_subcommand -l version',
    ...[...words].flatMap(([name, { actions, options, takesFiles }]) => {
      const after = `'__fish_seen_subcommand_from ${name}; and test (count (commandline -opc)) -eq 2'`
      const within = `'__fish_seen_subcommand_from ${name}'`
      return [
        ...(actions.length > 0 ? [`complete -c sendwright -n ${after} -f -a '${list(actions)}'`] : []),
        ...(takesFiles ? [] : [`complete -c sendwright -n ${within} -f`]),
        ...options.map((option) => `complete -c sendwright -n ${within} -l ${option.slice(2)}`),
      ]
    }),
    '',
  ].join('\n')

export const SHELLS = { bash, zsh, fish }
