/** What no task covers: the operations of the API by their description, and calls of those that read. */
import { map, optional, text } from '../../base/shape.ts'
import { isPlainObject } from '../../base/values.ts'
import { type Item, pathPart, Refused, type Tool, tool } from './tool.ts'

const FOUND_MAX = 30
/** They return secrets, or links that need no key. */
const CLOSED: ReadonlySet<string> = new Set([
  ...['readSigningKey', 'listAlertSettings', 'listSnsTopics', 'readExportUrl'],
  ...['listValidationJobs', 'readValidationJob', 'readListValidation'],
])

interface Described {
  method: string
  path: string
  spec: Item
}

/** @param describe the OpenAPI description */
export function operationTools(describe: () => Item): Tool[] {
  let known: ReadonlyMap<string, Described> | undefined
  const operations = () => {
    known ??= byId(describe())
    return known
  }

  return [
    tool({
      name: 'describe_operation',
      title: 'Describe operations of the API',
      description:
        'The parameters, rights and answers of one operation by its id; or the operations whose id, path or summary has all the words.',
      input: { id: optional(text('operationId')), words: optional(text('Words to look for')) },
      async run(_, { id, words = '' }) {
        if (id !== undefined) {
          const { method, path, spec } = found(operations(), id)
          const { summary, description, parameters, requestBody, responses, 'x-rights': rights } = spec
          const callable = isCallable(found(operations(), id))
          const about = { id, method, path, callable, summary, description, rights }
          return { operation: { ...about, parameters, requestBody, responses } }
        }
        const wanted = words.toLowerCase().split(/\s+/).filter(Boolean)
        const all = [...operations()].flatMap(([one, { method, path, spec }]) => {
          const line = `${one} ${method} ${path} ${spec['summary']}`
          return wanted.every((word) => line.toLowerCase().includes(word)) ? [line] : []
        })
        return { operations: all.slice(0, FOUND_MAX), of: all.length }
      },
    }),
    tool({
      name: 'call_operation',
      asksOthers: true,
      title: 'Call an operation that reads',
      description: 'Calls a GET operation of the API by its id. Others are refused.',
      input: {
        id: text('operationId'),
        path: optional(map('Variable parts of the path by name', text('Value'))),
        query: optional(map('Parameters by name', text('Value'))),
      },
      async run({ api }, { id, path = {}, query = {} }) {
        const operation = found(operations(), id)
        if (!isCallable(operation))
          throw new Refused(
            `${id} is not called for assistants: it changes something, or returns no JSON`,
            403,
          )
        const target = operation.path.replace(/\{([^}]+)\}/g, (_, name: string) => {
          const value = Object.hasOwn(path, name) ? path[name] : undefined
          if (!value) throw new Refused(`The part "${name}" of the path is missing`, 400)
          return pathPart(value)
        })
        return api.read(target, query)
      },
    }),
  ]
}

/** The operations of a description by their ids; an alias is none of its own. */
export function byId(description: Item): ReadonlyMap<string, Described> {
  const entries = Object.entries(description['paths'] as Item).flatMap(([path, item]) =>
    Object.entries(item as Record<string, Item>).flatMap(([method, spec]) =>
      spec['x-alias-of'] === undefined
        ? [[String(spec['operationId']), { method: method.toUpperCase(), path, spec }] as const]
        : [],
    ),
  )
  return new Map(entries)
}

function found(operations: ReadonlyMap<string, Described>, id: string): Described {
  const operation = operations.get(id)
  if (!operation) throw new Refused('There is no such operation; describe_operation finds them', 404)
  return operation
}

/** Public ones open links of mail, which counts, or take tokens. */
export function isCallable({ method, spec }: Described): boolean {
  const isPublic = (spec['x-rights'] as Item)['public'] === true
  const content = (spec['responses'] as Record<string, Item>)['200']?.['content']
  const isJson = isPlainObject(content) && 'application/json' in content && !('text/event-stream' in content)
  return method === 'GET' && !isPublic && isJson && !CLOSED.has(String(spec['operationId']))
}
