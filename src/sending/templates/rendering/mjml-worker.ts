/** The worker thread that compiles MJML to HTML; mjml.ts starts it with the first document. */
import { parentPort } from 'node:worker_threads'
import type { MjmlResult } from './mjml.ts'

const { default: mjml } = await import('mjml')

/** Values of attributes are checked, except those that only rendering supplies. */
const HANDLEBARS = /\{\{/

async function compile(source: string): Promise<MjmlResult> {
  try {
    const { html, errors } = await mjml(source, {
      validationLevel: 'soft',
      ignoreIncludes: true,
      keepComments: true,
    })
    const error = errors.find(({ message }) => !HANDLEBARS.test(message))
    return error
      ? { kind: 'failed', why: `line ${error.line}: ${error.message}` }
      : { kind: 'compiled', html }
  } catch (error) {
    return { kind: 'failed', why: (error as Error).message.split('\n', 1)[0] ?? '' }
  }
}

parentPort?.on('message', async (source: string) => parentPort?.postMessage(await compile(source)))
parentPort?.postMessage('ready')
