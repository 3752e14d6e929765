import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { App } from './app.tsx'
import { printInLightColours } from './look/print-colours.ts'
import './look/styles.ts'

const root = document.getElementById('root')
if (root === null) throw new Error('Cannot start the dashboard: the page has no element "root"')
printInLightColours()
createRoot(root).render(
  <StrictMode>
    <App />
  </StrictMode>,
)
