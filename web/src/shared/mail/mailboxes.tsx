/**
 * The mailboxes of a header field. Names and addresses are isolated from each other: a name that is written from right to
 * left would turn its address around.
 */
export const Mailboxes = ({ text }: { text: string }) =>
  // biome-ignore lint/suspicious/noArrayIndexKey: parts repeat, and their order is theirs
  text.split(/(<[^<>]*>)/).map((part, index) => <bdi key={index}>{part}</bdi>)
