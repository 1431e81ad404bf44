// The one way to make an element.  What goes in is text or other elements;
// nothing is ever read as markup, and links lead nowhere but into the console.

const PROPERTIES = new Set(['value', 'checked', 'selected', 'disabled', 'open', 'multiple'])

function fill(node, props, children) {
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === undefined || value === null || value === false) continue
    if (typeof value === 'function') node.addEventListener(name.replace(/^on/, ''), value)
    else if (PROPERTIES.has(name)) node[name] = value
    else if (/^(on|style$|srcdoc$)/.test(name)) throw new Error(`no attribute ${name}`)
    else if (/^(href|src)$/.test(name) && !/^(#|blob:)/.test(value)) throw new Error('no such link')
    else node.setAttribute(name, value === true ? '' : String(value))
  }
  add(node, children)
  return node
}

function add(node, children) {
  for (const child of children.flat(9)) {
    if (child === undefined || child === null || child === false) continue
    node.append(child instanceof Node ? child : String(child))
  }
}

export const h = (name, props, ...children) => fill(document.createElement(name), props, children)

export const svg = (name, props, ...children) =>
  fill(document.createElementNS('http://www.w3.org/2000/svg', name), props, children)

export function put(node, ...children) {
  node.replaceChildren()
  add(node, children)
  return node
}

let last = 0

/** An id for a label or a description to refer to. */
export const newId = () => `e${++last}`
