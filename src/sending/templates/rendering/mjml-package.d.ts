/** The part of mjml 5 that is used here: the package comes without types. */
declare module 'mjml' {
  export interface MjmlError {
    line: number
    message: string
    tagName: string
  }
  /** @throws Error for a document that is not MJML */
  export default function mjml(
    source: string,
    options: { validationLevel: 'soft'; ignoreIncludes: true; keepComments: boolean },
  ): Promise<{ html: string; errors: MjmlError[] }>
}
