// openapi-typescript wants the compiler as a library, which TypeScript 7 is not.
import { registerHooks } from 'node:module'

const LIBRARY =
  'data:text/javascript,' +
  encodeURIComponent(
    "import { createRequire } from 'node:module'; export default createRequire('" +
      import.meta.url +
      "')('@ts-morph/common').ts",
  )
registerHooks({
  resolve: (name, context, next) =>
    name === 'typescript' ? { url: LIBRARY, shortCircuit: true } : next(name, context),
})
