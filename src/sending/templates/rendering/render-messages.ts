/** What the service (render.ts) and its threads (render-worker.ts) exchange. */

import type { UsedVariable } from '../variables.ts'
import type { RenderLimit } from './program.ts'

/** What is rendered. Equal keys mean equal contents: compiled templates are remembered by key. */
export interface TemplateSource {
  key: string
  content: string
  /** Field name to Handlebars text. */
  headers: Readonly<Record<string, string>>
}

export interface Rendered {
  kind: 'rendered'
  html: string
  /** Null unless requested. */
  text: string | null
  /** Rendered without escaping; without line ends and other control characters. */
  headers: Record<string, string>
  missing: string[]
  /** Variables of content and headers; empty unless missing names are requested. */
  variables: UsedVariable[]
}

/** `syntax` only for content that was not checked when it was stored; `detail`: the reason, with the line. */
export interface RenderFailure {
  kind: 'failed'
  cause: RenderLimit | 'memory' | 'syntax'
  detail: string
}

export type RenderResult = Rendered | RenderFailure

export type WorkerJob =
  | { kind: 'check'; template: number }
  | { kind: 'render'; template: number; variables: unknown; text: boolean; missing: boolean; marked: boolean }

export interface WorkerBatch {
  batch: number
  templates: readonly TemplateSource[]
  jobs: readonly WorkerJob[]
}

export interface WorkerResults {
  batch: number
  /** Results of the jobs after those of the previous message. */
  results: readonly RenderResult[]
}
