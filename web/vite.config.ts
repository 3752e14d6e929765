import { join } from 'node:path'
import react from '@vitejs/plugin-react'
import { defineConfig } from 'vite'
import { chunksOf } from './chunks.ts'
import { guidesPlugin } from './guides-plugin.ts'

const chunks = chunksOf(join(import.meta.dirname, 'src/main.tsx'))
const SERVICE = process.env['SENDWRIGHT_PUBLIC_URL'] ?? 'http://127.0.0.1:8080'

/**
 * Everything goes into files of its own with hashed names: no inline script, no data: asset, so that the
 * page runs under `script-src 'self'`. Served from the root of the service.
 */
export default defineConfig({
  root: import.meta.dirname,
  base: '/',
  plugins: [react(), guidesPlugin()],
  build: {
    outDir: 'dist',
    emptyOutDir: true,
    assetsInlineLimit: 0,
    // Kilobytes before compression, for the warning only: what the first load may weigh is tested.
    chunkSizeWarningLimit: 600,
    modulePreload: { polyfill: false },
    license: { fileName: 'licenses.md' },
    rolldownOptions: {
      output: {
        // Libraries of every page change seldom: a file of their own stays in the browser's cache across releases.
        // Pages are loaded by section (chunks.ts).
        codeSplitting: {
          groups: [
            {
              name: 'libraries',
              tags: ['$initial'],
              test: /node_modules\/(?:react|react-dom|scheduler|@tanstack|@mantine)\//,
              priority: 9,
            },
            { name: 'first', tags: ['$initial'], test: /\.tsx?$/, priority: 8 },
            ...[...chunks.shared, chunks.section].map((name, at, all) => ({
              name,
              debugName: `pages ${at}`,
              priority: all.length - at,
            })),
          ],
        },
      },
    },
  },
  server: { proxy: { '^/(sendwright|v[1-5])/': { target: SERVICE, changeOrigin: false } } },
})
