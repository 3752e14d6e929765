/**
 * The worker thread in which templates are compiled and rendered. It uses no network, files or secrets, and the service
 * ends it when a job takes too long (render.ts).
 *
 * A message holds jobs and the templates they share; results are returned in groups, so that large ones do not pile up
 * here. `progress` shows the service what the thread does: [number of the job from 1, or 0 when idle; phase, 1 while text
 * is made from HTML].
 */
import { parentPort, workerData } from 'node:worker_threads'
import { type UsedVariable, usedVariables } from '../variables.ts'
import { compileParsed, LimitReached, type Program, parseTemplate, TemplateFault } from './program.ts'
import type {
  RenderResult,
  TemplateSource,
  WorkerBatch,
  WorkerJob,
  WorkerResults,
} from './render-messages.ts'

/** Compiled templates kept. */
const TEMPLATES_MAX = 200
/** Their parts together: 10 MB of the 64 that this thread has. Parsing 100 KB may take another 20. */
const PARTS_MAX = 20_000
/** Results are sent as soon as they hold this many characters. */
const GROUP_CHARS_MAX = 500_000
/** Line ends of every kind, which would begin another header field, and other control characters. */
const HEADER_BREAKS = /[\p{Cc}\u2028\u2029]+/gu

interface CompiledTemplate {
  html: Program
  headers: readonly (readonly [name: string, value: Program])[]
  variables: UsedVariable[]
  parts: number
}

const compiled = new Map<string, CompiledTemplate>()
let compiledParts = 0
const { progress } = workerData as { progress: Int32Array }
let htmlToText: ((html: string) => string) | null = null

function compile({ key, content, headers }: TemplateSource): CompiledTemplate {
  const known = compiled.get(key)
  if (known) return known
  const parsed = parseTemplate(content)
  const html = compileParsed(parsed, { escaped: true })
  const parsedHeaders: hbs.AST.Program[] = []
  const compiledHeaders = Object.entries(headers).map(
    ([name, value]) => [name, compileHeader(name, value, parsedHeaders)] as const,
  )
  const variables = usedVariables([...parsedHeaders, parsed])
  const parts = compiledHeaders.reduce(
    (sum, [, program]) => sum + program.parts,
    html.parts + variables.length,
  )
  const template = { html, headers: compiledHeaders, variables, parts }
  compiled.set(key, template)
  compiledParts += parts
  for (const [oldest, { parts: given }] of compiled) {
    if (compiled.size <= TEMPLATES_MAX && compiledParts <= PARTS_MAX) break
    compiled.delete(oldest)
    compiledParts -= given
  }
  return template
}

/** Adds its parsed text to `parsedHeaders`. */
function compileHeader(name: string, value: string, parsedHeaders: hbs.AST.Program[]): Program {
  try {
    const parsed = parseTemplate(value)
    parsedHeaders.push(parsed)
    return compileParsed(parsed, { escaped: false })
  } catch (error) {
    throw error instanceof TemplateFault ? new TemplateFault(null, `header ${name}: ${error.message}`) : error
  }
}

async function runJob(job: WorkerJob, source: TemplateSource): Promise<RenderResult> {
  try {
    const template = compile(source)
    if (job.kind === 'check')
      return { kind: 'rendered', html: '', text: null, headers: {}, missing: [], variables: [] }
    const missing = job.missing ? new Set<string>() : null
    const headers: Record<string, string> = {}
    for (const [name, value] of template.headers) {
      headers[name] = value.run(job.variables, missing, job.marked).replaceAll(HEADER_BREAKS, ' ').trim()
    }
    const html = template.html.run(job.variables, missing, job.marked)
    const text = job.text ? await textOf(html) : null
    const variables = missing ? template.variables : []
    return { kind: 'rendered', html, text, headers, missing: [...(missing ?? [])], variables }
  } catch (error) {
    if (error instanceof TemplateFault) return { kind: 'failed', cause: 'syntax', detail: error.message }
    if (error instanceof LimitReached) return { kind: 'failed', cause: error.limit, detail: '' }
    if (error instanceof RangeError) return { kind: 'failed', cause: 'depth', detail: '' }
    throw error
  }
}

async function textOf(html: string): Promise<string> {
  Atomics.store(progress, 1, 1)
  htmlToText ??= (await import('../../../protocols/mime/quoted/html-text.ts')).htmlToText
  return htmlToText(html)
}

async function runBatch({ batch, templates, jobs }: WorkerBatch): Promise<void> {
  let results: RenderResult[] = []
  let chars = 0
  for (const [index, job] of jobs.entries()) {
    Atomics.store(progress, 1, 0)
    Atomics.store(progress, 0, index + 1)
    const result = await runJob(job, templates[job.template] as TemplateSource)
    results.push(result)
    chars += result.kind === 'rendered' ? result.html.length + (result.text?.length ?? 0) : 0
    if (chars > GROUP_CHARS_MAX) {
      parentPort?.postMessage({ batch, results } satisfies WorkerResults)
      results = []
      chars = 0
    }
  }
  Atomics.store(progress, 0, 0)
  parentPort?.postMessage({ batch, results } satisfies WorkerResults)
}

parentPort?.on('message', (message: WorkerBatch) => void runBatch(message))
