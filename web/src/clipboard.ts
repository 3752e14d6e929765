/**
 * Puts text into the clipboard; call it straight from a click. Browsers offer their clipboard to pages of secure
 * origins alone; under plain http on a network, where self-hosted services often are, the old command of
 * editors does it for a selected text. Resolves whether it is done.
 */
export async function copyText(text: string): Promise<boolean> {
  if (navigator.clipboard === undefined) return copySelected(text)
  return navigator.clipboard.writeText(text).then(
    () => true,
    () => copySelected(text), // a policy of the browser forbids the one, maybe not the other
  )
}

function copySelected(text: string): boolean {
  const focused = document.activeElement
  const area = document.createElement('textarea')
  area.value = text
  area.setAttribute('readonly', '') // no keyboard comes up on a phone
  area.className = 'copy-source'
  document.body.append(area)
  try {
    area.select()
    return document.execCommand('copy')
  } finally {
    area.remove()
    if (focused instanceof HTMLElement) focused.focus()
  }
}
