/** Paper is white: while a page is printed, the dark scheme gives way to the light one, whose text can be read there. */
export function printInLightColours(): void {
  const { documentElement: root } = document
  let before: string | undefined
  window.matchMedia('print').addEventListener('change', ({ matches }) => {
    if (matches) {
      before = root.dataset['mantineColorScheme']
      root.dataset['mantineColorScheme'] = 'light'
    } else if (before !== undefined) root.dataset['mantineColorScheme'] = before
  })
}
