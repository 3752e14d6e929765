/** How an operation says what the audit log keeps of its calls (audit.ts). */

export type AuditRule =
  /** Not recorded; the text is the reason. */
  | { exempt: string }
  /** The operation writes its rows itself: with its change in one transaction, or because its caller is known late. */
  | { by: 'operation' }
  | RecordedCall

export interface RecordedCall {
  /** `<thing>.<verb>`; default: of the operation's id, `createDomainKey` being `domain-key.create`. */
  action?: string
  /** Parameters that name what is changed, after the parts of the path. */
  subject?: readonly string[]
  /** Text and JSON parameters whose values are kept. URLs lose user info and query. */
  given?: readonly string[]
  /** Members of the answer that name or count what was made, such as `key.id`. */
  made?: readonly string[]
}
