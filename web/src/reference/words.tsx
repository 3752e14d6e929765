/** A sentence of the description: what stands between backticks is code. */
export function Words({ text }: { text: string }) {
  return text.split('`').map((part, index) =>
    index % 2 === 1 ? (
      // biome-ignore lint/suspicious/noArrayIndexKey: the parts of a text have no other identity
      <code key={index} className="reference-word">
        {part}
      </code>
    ) : (
      part
    ),
  )
}
