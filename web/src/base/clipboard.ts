/**
 * Copies text to the clipboard; call it directly from a click. Browsers offer the clipboard API only to secure
 * origins. Under plain http on a network, where self-hosted services often are, the old `copy` command works on
 * selected text. Resolves whether it succeeded.
 */
export async function copyText(text: string): Promise<boolean> {
  if (navigator.clipboard === undefined) return copySelected(text)
  return navigator.clipboard.writeText(text).then(
    () => true,
    () => copySelected(text), // a browser policy forbids this one, perhaps not the other
  )
}

function copySelected(text: string): boolean {
  const focused = document.activeElement
  const area = document.createElement('textarea')
  area.value = text
  area.setAttribute('readonly', '') // opens no keyboard on a phone
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
