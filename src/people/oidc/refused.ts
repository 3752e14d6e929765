/** A sign-in with the provider that fails. The message is a sentence for the person who tries. */
export class SignInRefused extends Error {
  /** Status of the response. */
  readonly status: number

  constructor(text: string, status = 403) {
    super(text)
    this.status = status
  }
}
