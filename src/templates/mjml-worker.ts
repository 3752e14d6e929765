/** The thread that turns MJML into HTML; mjml.ts starts it when the first MJML comes. */
import { parentPort } from 'node:worker_threads'
import type { MjmlResult } from './mjml.ts'

const { default: mjml } = await import('mjml')

/** The values of attributes are checked, and those that only rendering gives are no fault. */
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
