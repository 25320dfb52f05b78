import { greeting } from './greeting.ts'

document.querySelector('#app')?.append(greeting())
