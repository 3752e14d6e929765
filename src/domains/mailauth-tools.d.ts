// The library ships no types for this file; only what is used here is declared.
declare module 'mailauth/lib/tools.js' {
  /** The first of `domains` that is aligned with `from` (RFC 7489 §3.1), by the public suffix list. */
  export function getAlignment(
    from: string,
    domains: readonly { domain: string }[],
    strict: boolean,
  ): { domain: string } | false
}
