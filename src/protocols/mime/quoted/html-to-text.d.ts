/** The part of html-to-text 10 that is used here: the package has no types. */
declare module 'html-to-text' {
  export type Selector = { selector: string; format?: string; options?: Record<string, unknown> }
  export type Options = {
    wordwrap?: number | false
    limits?: { maxInputLength?: number; maxDepth?: number; ellipsis?: string }
    selectors?: Selector[]
  }
  export function compile(options: Options): (html: string) => string
}
