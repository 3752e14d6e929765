/** As much of n8n as its Mailgun node asks for: the parameters of one item, and HTTP requests with the credentials. */
import type { IncomingMessage } from 'node:http'
import FormData from 'form-data'

export interface N8nNode {
  execute(this: object): Promise<unknown[][]>
}

export interface NodeRun {
  parameters: Record<string, unknown>
  /** As the user enters them for the type `mailgunApi`. */
  credentials: { apiDomain: string; emailDomain: string; apiKey: string }
  binary: { name: string; content: Buffer }
  /** PEM of the authority to trust. */
  authority: string
}

/** A value with options, or several of them, as the node gives them for files. */
interface Part {
  value: Buffer
  options: { filename: string }
}

interface NodeRequest {
  uri: string
  formData: Record<string, string | string[] | Part[]>
}

/** Runs the node with one item. @throws Error when the service does not respond with 2xx */
export async function runNode(node: N8nNode, run: NodeRun): Promise<unknown[][]> {
  const context = {
    getInputData: () => [{ json: {}, binary: { data: {} } }],
    getNodeParameter: (name: string) => run.parameters[name],
    getCredentials: async () => run.credentials,
    getNode: () => ({ name: 'Mailgun' }),
    continueOnFail: () => false,
    helpers: {
      assertBinaryData: () => ({ fileName: run.binary.name }),
      getBinaryDataBuffer: async () => run.binary.content,
      requestWithAuthentication: (_type: string, request: NodeRequest) => post(request, run),
      returnJsonArray: (json: unknown) => [{ json }],
      constructExecutionMetaData: (items: unknown[]) => items,
    },
  }
  return await node.execute.call(context)
}

function post({ uri, formData }: NodeRequest, { credentials, authority }: NodeRun): Promise<unknown> {
  const form = new FormData()
  for (const [name, given] of Object.entries(formData)) {
    for (const value of Array.isArray(given) ? given : [given]) {
      if (typeof value === 'string') form.append(name, value)
      else form.append(name, value.value, value.options)
    }
  }
  const { hostname, port, pathname } = new URL(uri)
  const request = {
    ...{ protocol: 'https:' as const, host: hostname, port, path: pathname, ca: authority },
    auth: `api:${credentials.apiKey}`,
  }
  return new Promise((resolve, reject) => {
    form.submit(request, (error, response) => {
      if (error) reject(error)
      else void answerOf(response).then(resolve, reject)
    })
  })
}

async function answerOf(response: IncomingMessage): Promise<unknown> {
  const text = Buffer.concat(await response.toArray()).toString()
  if (response.statusCode !== 200) throw new Error(`${response.statusCode}: ${text}`)
  return JSON.parse(text)
}
