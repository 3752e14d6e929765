import { createTheme, type MantineColorsTuple } from '@mantine/core'

/** A calm green-blue, light to dark; shade 7 has a contrast of 5.5:1 with white text (WCAG 2.2 §1.4.3 requires 4.5). */
const petrol: MantineColorsTuple = [
  '#eefaf8',
  '#d9f2ee',
  '#b0e3dc',
  '#83d2c8',
  '#5ec3b7',
  '#35a99c',
  '#158a80',
  '#0f766e',
  '#0b5f59',
  '#074a46',
]

/** Surfaces and text of the dark scheme, from text to page: slate instead of the library's neutral grey. */
const dark: MantineColorsTuple = [
  '#e6eaed',
  '#b8c2ca',
  '#9aa7b2',
  '#66727e',
  '#38424b',
  '#2d353d',
  '#222930',
  '#1a1f24',
  '#14181c',
  '#0f1215',
]

/** Only system fonts: the page requests nothing from other hosts. */
const SANS = 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "Noto Sans", Arial, sans-serif'
const MONO = 'ui-monospace, "SF Mono", Menlo, Consolas, "Liberation Mono", "DejaVu Sans Mono", monospace'

const WINDOW = {
  closeButtonProps: { 'aria-label': 'Close' },
  // Outside of the page's own parts, the library's <header> would be another banner of the page.
  attributes: { header: { role: 'none' } },
}

export const theme = createTheme({
  colors: { petrol, dark },
  primaryColor: 'petrol',
  primaryShade: 7,
  fontFamily: SANS,
  fontFamilyMonospace: MONO,
  headings: { fontFamily: SANS, fontWeight: '650' },
  defaultRadius: 'md',
  cursorType: 'pointer',
  respectReducedMotion: true,
  components: {
    Modal: { defaultProps: WINDOW },
    Drawer: { defaultProps: WINDOW },
  },
})
